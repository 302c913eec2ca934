"""GEODIST beside the oracle, which prints four digits behind the point: short and long ways, in every unit."""

import pytest

from lib.seeds import generator, seeds

UNITS = ("m", "km", "ft", "mi")


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("spread", [1e-5, 1e-3, 0.1, 10, 80])
def test_four_digits(client, oracle, spread, seed):
    random = generator(seed, spread)
    places = [(random.uniform(-spread, spread), random.uniform(-spread, spread)) for _ in range(60)]
    with oracle.connect() as other:
        for each in (client, other):
            each.call_raw("GEOADD", "g", *(word for i, (x, y) in enumerate(places) for word in (repr(x), repr(y), "p%d" % i)))
        for i in range(60):
            for unit in UNITS:
                words = ("GEODIST", "g", "p%d" % i, "p%d" % (i * 7 % 60), unit)
                assert client.call_raw(*words) == other.call_raw(*words), words
