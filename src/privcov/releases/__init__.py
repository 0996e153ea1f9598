"""The public result: releases, their certificates, files and signatures. Nothing here has seen data."""
