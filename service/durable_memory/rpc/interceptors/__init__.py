"""What happens around every call: layers in one order, each for one concern."""
