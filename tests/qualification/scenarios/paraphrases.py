"""Statements with a question about each that shares as few words with it as can be, half of them across languages.

No two statements are about the same thing, so that a question has one right answer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

PAIRS: Final = (
    ("The customer's dog is afraid of thunder.", "Is their pet scared of storms?"),
    ("Invoices above two thousand euros need a second signature.", "Who has to countersign expensive bills?"),
    ("The night train to Vienna leaves from platform nine.", "Where do I board the sleeper to Austria?"),
    ("Backups of the warehouse database run at two in the morning.", "When is the inventory data copied for safety?"),
    ("Her grandmother grew up in a fishing village in Norway.", "In which country did the old lady spend childhood?"),
    ("The vegetarian menu replaces meat with roasted mushrooms.", "What is served to those who eat no animals?"),
    ("The greenhouse is watered by hand during heat waves.", "How do the plants get water when it is very hot?"),
    ("The keys to the bicycle shed hang behind the kitchen door.", "自行车棚的钥匙放在哪里？"),
    ("The dentist moved the appointment to Thursday afternoon.", "看牙医的时间改到什么时候了？"),
    ("The office coffee machine is descaled every first Monday.", "咖啡机多久除垢一次？"),
    ("The museum closes early on public holidays.", "节假日博物馆几点关门？"),
    ("The new laptop has a keyboard with a German layout.", "新笔记本电脑的键盘是什么布局？"),
    ("The violin teacher accepts only pupils older than seven.", "How old must a child be for string lessons?"),
    ("The elevator in the north wing stops at the seventh floor.", "Up to which storey can one ride the lift?"),
    ("The lighthouse was painted red after the great flood.", "What colour did the beacon tower get?"),
    ("The bakery sells yesterday's bread at half price.", "Where is stale loaf cheaper?"),
    ("The football team trains in the gym when it snows.", "Where do the players practise in winter weather?"),
    ("The librarian collects maps of underground rivers.", "Which charts interest the person who lends books?"),
    ("The patent for the folding ladder expires in June.", "When do the rights to the collapsible steps end?"),
    ("The ferry carries no more than twelve cars.", "渡轮最多能载多少辆汽车？"),
)

OTHERS: Final = (
    "The chess club meets in the old water tower.",
    "Parcels heavier than ten kilos are left with the neighbour.",
    "The choir rehearses the requiem without an organ.",
    "The swimming pool is heated by the data centre.",
    "The tax office answers letters within six weeks.",
)
"""About none of these."""


def sentences() -> Collection[str]:
    """All of them: another word in each would tell a leak as well, and would be what the model hears best."""
    return [*(text for pair in PAIRS for text in pair), *OTHERS]
