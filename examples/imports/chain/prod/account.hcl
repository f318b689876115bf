inputs = {
  account_id = "0000000"
}
