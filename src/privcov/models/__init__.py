"""What a release answers: post-processing alone, which can import nothing that has seen data."""
