package node_test

import data.node

fleet := {"job": {"name": "warm"}, "nodes": [{"name": "n1"}, {"name": "n2"}]}

test_without_facts_there_is_no_order if {
	answer := node.rank with input as {}
	answer.keys == []
}

test_ranks_are_columns if {
	answer := node.rank with input as fleet with data.extend.node as {"b": {"rank": {"n1": 2}}, "a": {"rank": {"n2": 1}}}
	answer.keys == [[0, 2], [1, 0]]
}

test_a_hold_that_is_none_holds_each_node if {
	answer := node.rank with input as fleet with data.extend.node as {"x": {"hold": [7]}}
	{hold.node | some hold in answer.holds} == {"n1", "n2"}
}
