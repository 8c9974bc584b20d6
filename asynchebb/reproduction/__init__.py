"""The paper: its experiments under several readings, what it claims, and the report on what holds."""
