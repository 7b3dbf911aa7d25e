"""Sends profiles to a server: profile-push(1)."""
