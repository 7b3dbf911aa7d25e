"""stackpipe watch: keeps the last minutes of a target, and draws them when something went wrong."""
