"""One module for each kind of task: `make(model, plan, **fetch_options)` puts its pipeline together."""
