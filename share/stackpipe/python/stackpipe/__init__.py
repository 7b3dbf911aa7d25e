"""The commands that join stackpipe's tools.  They use only Python's standard library, and no shell."""
