package extend.rollout.gold_last_test

import future.keywords.not

import data.extend.rollout.gold_last

pods := [
	{"name": "web-a", "labels": {"tier": "gold"}},
	{"name": "web-b", "labels": {"tier": "tin"}},
	{"name": "web-c", "labels": {}},
	{"name": "web-d"},
]

test_gold_alone_has_a_higher_rank if gold_last.rank == {"web-a": 1} with input.pods as pods

test_without_gold_the_rank_is_there_all_the_same if gold_last.rank == {} with input.pods as []
