"""The reproduction of the paper: its experiments under several readings, its claims, and a report on which hold."""
