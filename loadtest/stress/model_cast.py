"""Who takes part in a model check, by the seed: users, and the clients that they have."""

import random

from model_client import ModelClient
from model_filter import Filter, draw
from model_fold import Fold
from model_truth import COLUMNS, KEYS
from support.chat import Principal, person

CLIENTS = 20
TABLES = tuple(KEYS)


class User(Principal):
    @property
    def is_known(self):
        return self.sub is not None


USERS = [User(name, sub=person(number)) for number, name in enumerate(("ann", "bea", "cem", "dan", "eve", "fay"))]
NOBODY = User("anon", "anon")


def client_of(seed, number, hubs, load):
    """Some have a cursor, some are anonymous, some reload their page; two thirds have filters."""
    chance = random.Random(f"{seed} client {number}")
    user = NOBODY if number % 10 == 9 else USERS[number % len(USERS)]
    client = ModelClient(
        f"{number} ({user})", 2 if chance.random() < 0.75 else 1, user, chance.choice(("counts", "counts", "page")), hubs, chance)
    # Clients that look alike are taken for one another: some do, most have topics of their own.
    topics = [f"realtime:model-{number if chance.random() < 0.7 else 'shared'}"]
    if chance.random() < 0.4:
        topics.append(f"realtime:second-{number}")
    for topic in topics:
        folds = [_fold(chance, table, user) for table in chance.sample(TABLES, chance.choice((1, 2, 2, 4)))]
        client.open(topic, folds, chance.random() < 0.45, load)
    return client


def _fold(chance, table, user):
    filter = draw(chance, table, user) if chance.random() < 0.6 else Filter()
    if chance.random() > 0.2:
        return Fold(table, filter)
    needed = {*KEYS[table], "version"}
    return Fold(table, filter, tuple(
        column for column in COLUMNS[table] if column in needed or chance.random() < 0.4))
