"""The laboratory of privcov: benches, the papers' experiments again, and methods that are no mechanisms.

It measures, attacks and fills disks, so it is a distribution of its own: who releases data does not install it.
``pip install privcov-lab`` adds ``privcov bench`` and ``privcov reproduce``.
"""
