"""What the client takes and returns: frozen Python values, converted from and to the contract's messages."""
