"""Prime factors of loop bounds: what the program counts."""

from __future__ import annotations

from itertools import product
from math import prod


def prime_factors(number: int) -> dict[int, int]:
    """Multiplicity of every prime of a number >= 1, primes ascending (empty for 1)."""
    factors: dict[int, int] = {}
    prime = 2
    while prime * prime <= number:
        while number % prime == 0:
            factors[prime] = factors.get(prime, 0) + 1
            number //= prime
        prime += 1 if prime == 2 else 2
    if number > 1:
        factors[number] = factors.get(number, 0) + 1
    return factors


def divisors(number: int) -> list[tuple[int, dict[int, int]]]:
    """Every divisor of a number, ascending, with its exponent of each prime of the number (zeros included)."""
    factors = prime_factors(number)
    exponents = product(*(range(multiplicity + 1) for multiplicity in factors.values()))
    rows = [dict(zip(factors, row, strict=True)) for row in exponents]
    return sorted(((prod(prime**power for prime, power in row.items()), row) for row in rows), key=lambda pair: pair[0])


def smooth_bound(bound: int, largest_prime: int) -> int:
    """The smallest number >= `bound` whose prime factors are all at most `largest_prime` (>= 2)."""
    small = [prime for prime in (2, 3, 5, 7, 11, 13) if prime <= largest_prime]
    if largest_prime > 16:  # such numbers lie close together
        while max(prime_factors(bound), default=1) > largest_prime:
            bound += 1
        return bound
    best = 1 << (bound - 1).bit_length()

    def extend(number: int, first: int) -> None:
        nonlocal best
        for index in range(first, len(small)):
            larger = number * small[index]
            if larger >= bound:
                best = min(best, larger)
            else:
                extend(larger, index)

    if bound > 1:
        extend(1, 0)
    return best
