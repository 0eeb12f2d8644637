"""Prices in whole pence."""


def with_tax(pence, rate):
    """The price with tax, rounded half up."""
    return (pence * (100 + rate) + 50) // 100


# TODO: discounts by the dozen
def dozen(pence):
    return pence * 12
