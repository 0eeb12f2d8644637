"""Duties. It grew with every country, and it shows."""


def duty(country, kind, grams, pence, gift):
    # Whole pence, rounded down.
    if country == "A":
        if kind == "tea":
            if grams > 1000:
                if gift:
                    return 0
                elif pence > 5000:
                    return pence // 5
                else:
                    return pence // 10
            else:
                return 0
        elif kind == "biscuit":
            if grams > 500 and not gift:
                return pence // 20
            elif gift and pence > 9000:
                return pence // 25
            else:
                return 0
    elif country == "B":
        if kind == "tea" and grams > 2000:
            return pence // 4
        elif kind == "tea" and grams > 1000:
            return pence // 8
        elif kind == "biscuit" or kind == "cake":
            if pence > 10000 or grams > 5000:
                return pence // 3
            return 0
    elif country == "C":
        for limit, part in ((100, 50), (500, 20), (1000, 10)):
            if grams < limit:
                return pence // part
        while pence > 100000:
            pence -= 1000
        return pence // 2
    return 0


def is_exempt(country):
    return country == "D"
