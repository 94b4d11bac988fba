package extend.injection.no_sidecars_by_label_test

import data.extend.injection.no_sidecars_by_label

skipped(labels) := {wish.set: wish.message | some wish in wishes} if {
	wishes := no_sidecars_by_label.skip with input as {"pod": {"labels": labels}, "sets": [{"name": "audit"}, {"name": "logs"}, {"name": "mesh"}]}
}

test_the_label_leaves_them_out_but_for_the_audit if {
	skipped({"shop.example/no-sidecars": "INC-7"}) == {"logs": "The pod has the label shop.example/no-sidecars=INC-7.", "mesh": "The pod has the label shop.example/no-sidecars=INC-7."}
}

test_without_the_label_all_stay if {
	skipped({}) == {}
	skipped({"shop.example/no-sidecars": ""}) == {}
}
