from shop.prices import dozen, with_tax


def test_tax_is_rounded_half_up():
    assert with_tax(101, 20) == 121


def test_a_dozen_is_twelve():
    assert dozen(10) == 120
