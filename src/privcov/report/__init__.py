"""A release in words and tables; sees releases and nothing else."""
