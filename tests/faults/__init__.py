"""What goes wrong between a person and a file, and what they see of it: the tests that write docs/reliability.md."""
