"""The lists of values from which the data and the substitution parameters are drawn (clauses 4.2.2.13, 4.2.3)."""

from __future__ import annotations

from typing import NamedTuple

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")


class Nation(NamedTuple):
    """A nation's name (N_NAME) and the name of the region that its N_REGIONKEY refers to."""

    name: str
    region: str


def _nations(region_by_nation: str) -> tuple[Nation, ...]:
    pairs = (line.split(": ") for line in region_by_nation.strip().splitlines())
    return tuple(Nation(name, REGIONS[int(region)]) for name, region in pairs)


# In the order of N_NATIONKEY, which phone numbers are made of (clause 4.2.2.9).
NATIONS = _nations("""
ALGERIA: 0
ARGENTINA: 1
BRAZIL: 1
CANADA: 1
EGYPT: 4
ETHIOPIA: 0
FRANCE: 3
GERMANY: 3
INDIA: 2
INDONESIA: 2
IRAN: 4
IRAQ: 4
JAPAN: 2
JORDAN: 4
KENYA: 0
MOROCCO: 0
MOZAMBIQUE: 0
PERU: 1
CHINA: 2
ROMANIA: 3
SAUDI ARABIA: 4
VIETNAM: 2
RUSSIA: 3
UNITED KINGDOM: 3
UNITED STATES: 1
""")

# The first two characters of C_PHONE: N_NATIONKEY + 10 (clause 4.2.2.9).
COUNTRY_CODES = tuple(str(key + 10) for key in range(len(NATIONS)))

TYPE_SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINER_SYLLABLES = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")

# Clause 2.4.13.3; the only lists that no data is generated from as such.
COMMENT_WORDS_1 = ("special", "pending", "unusual", "express")
COMMENT_WORDS_2 = ("packages", "requests", "accounts", "deposits")

_COLOR_WORDS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick
floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender
lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive
orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy
seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow
"""
# The words of P_NAME.
COLORS = tuple(_COLOR_WORDS.split())
