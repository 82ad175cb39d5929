"""Talos: journal, friction, reflection, and what follows from them."""
