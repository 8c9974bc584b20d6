"""Figures, animations and the parts of HTML pages."""
