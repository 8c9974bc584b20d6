"""Kills asynchebb's commands at random moments; started again, they must end as if nothing had happened."""
