"""One module a family: its configurations as generics of a definition of the zoo."""
