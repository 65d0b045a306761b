"""The noise that a released number holds, as public data: a fraction is the scale of discrete Laplace noise, `Gaussian` has its σ²,
`Shares` are those of owners who counted together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, Event
from hedgerow.accounting.loss import MAX_SCALE, noise_variance, plain_fraction, text_of_fraction
from hedgerow.accounting.zcdp import gaussian_variance

_GAUSSIAN, _SHARES = "gaussian ", "shares "  # how their texts begin


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise of parameter σ²."""

    sigma_squared: Fraction


@dataclass(frozen=True)
class Shares:
    """Shares of discrete Laplace noise of that scale: `whole` of them are one draw, and `added` of them were added (PROOF.md, M4)."""

    scale: Fraction
    added: int
    whole: int

    @property
    def draws(self) -> float:
        """How many draws have the same variance: shares are independent and alike, so that variances add up."""
        return self.added / self.whole


Noise = Fraction | Gaussian | Shares


def noise_of(event: Event) -> Noise:
    """The noise on each number that an event answered."""
    return made_noise(event.mechanism, event.scale)


def made_noise(mechanism: str, scale: Fraction) -> Noise:
    """The same from the fields of an event that stands in a file."""
    return Gaussian(scale) if mechanism == DISCRETE_GAUSSIAN else scale


def variance_of(noise: Noise) -> float:
    """Variance of the noise on one number."""
    if isinstance(noise, Shares):
        return noise_variance(noise.scale) * noise.draws
    return gaussian_variance(noise.sigma_squared) if isinstance(noise, Gaussian) else noise_variance(noise)


def rough_variance(noise: Noise) -> float:
    """The same as if the noise were continuous: 2b² of a Laplace scale b, σ² of a Gaussian."""
    if isinstance(noise, Shares):
        return 2 * float(noise.scale) ** 2 * noise.draws
    return float(noise.sigma_squared) if isinstance(noise, Gaussian) else 2 * float(noise) ** 2


def text_of_noise(noise: Noise) -> str:
    """How it stands in a document.

    >>> text_of_noise(Fraction(3, 2)), text_of_noise(Gaussian(Fraction(1, 3)))
    ('1.5', 'gaussian 1/3')
    >>> text_of_noise(Shares(Fraction(20), 3, 2))
    'shares 3 of 2 of 20'
    """
    if isinstance(noise, Shares):
        return f"{_SHARES}{noise.added} of {noise.whole} of {text_of_fraction(noise.scale)}"
    return _GAUSSIAN + text_of_fraction(noise.sigma_squared) if isinstance(noise, Gaussian) else text_of_fraction(noise)


def noise_from_text(text: str) -> Noise:
    """The noise in somebody's file; raises ValueError for anything else."""
    if text.startswith(_SHARES):
        added, whole, scale = text.removeprefix(_SHARES).split(" of ")
        shares = Shares(plain_fraction(scale), int(added), int(whole))
        if text_of_noise(shares) != text or not 1 <= shares.whole <= shares.added:
            raise ValueError("shares of noise are not written in the usual way")
        return shares
    if text.startswith(_GAUSSIAN):
        return Gaussian(plain_fraction(text.removeprefix(_GAUSSIAN), MAX_SCALE**2))
    return plain_fraction(text)
