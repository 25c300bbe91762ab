"""What embedding providers share: what goes in, what may come out, whose turn it is, when to leave one alone."""
