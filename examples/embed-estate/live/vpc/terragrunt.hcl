terraform { source = "../../modules//vpc" }

inputs = { name = "main" }
