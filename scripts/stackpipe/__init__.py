"""The commands that join stackpipe's tools: plain modules of Python's standard library, without a shell."""
