"""From the domain to the wire. Everything that is encoded was checked when it came in, so nothing here can fail."""
