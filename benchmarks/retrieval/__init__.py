"""How well recall finds what it should: questions with known answers, through the API of a real server."""
