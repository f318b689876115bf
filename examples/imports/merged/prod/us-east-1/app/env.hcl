inputs = {
  env = "prod"
}
