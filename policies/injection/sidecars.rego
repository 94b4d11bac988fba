# METADATA
# title: Injection
# description: |
#   What pods are given by SidecarSets as they are created. Input and answer of
#   each entrypoint are the types of the same name in engine/decision/injection.
package injection

import future.keywords.not

# METADATA
# scope: document
# title: Which SidecarSets a pod is given
# description: |
#   Which SidecarSets a pod is given, at which revision and in which order, and
#   which are left out, and why (SS-02, SS-03).
# entrypoint: true
# labels:
#   id: injection.sidecars.no-facts
default sidecars := {
	"inject": [],
	"left": [],
	"wanted": [],
	"refuse": [{
		"rule": "injection.sidecars.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this pod are not complete, so it is not created.",
	}],
}

# METADATA
# title: What it is given
# description: Each SidecarSet of the question is given or left out, with a reason.
# labels:
#   id: injection.sidecars
sidecars := {
	"inject": [object.union({"set": name}, sidecars_revision[name]) | some name in sidecars_order; not sidecars_taken[name]],
	"left": array.concat(
		[object.union({"set": set.name}, because) | some set in input.sets; because := sidecars_left[set.name]],
		[object.union({"set": name}, because) | some name in sidecars_sorted; because := sidecars_taken[name]],
	),
	"wanted": [name | some name, _ in user_add; not sidecars_known[name]],
	"refuse": [],
} if {
	is_array(input.sets)
	is_string(input.pod.namespace)
}

sidecars_known := {set.name: set | some set in input.sets}

# The first clause that applies leaves a SidecarSet out. A canary stands in for its
# base only if it is not left out itself.
sidecars_left := object.union(sidecars_out, {set.name: because |
	some set in input.sets
	not sidecars_out[set.name]
	because := sidecars_replaced(set)
})

sidecars_out := {set.name: because |
	some set in input.sets
	because := sidecars_left_out(set)
}

# The canaries that nothing but a container's name can leave out, by what they stand in for.
sidecars_candidates := {base: names |
	some base in {set.canaryOf | some set in input.sets}
	names := {set.name |
		some set in input.sets
		set.canaryOf == base
		not sidecars_out[set.name]
	}
	count(names) > 0
}

# The canaries that the pod is given, by what they stand in for.
sidecars_canaries := {base: names |
	some base, candidates in sidecars_candidates
	names := {name | some name in candidates; not sidecars_lost[name]}
	count(names) > 0
}

# The canaries that an earlier SidecarSet leaves out, so that the pod is given the base.
sidecars_lost := {name: because |
	some candidates in sidecars_candidates
	some name in candidates
	because := sidecars_taken_beside_canaries[name]
}

sidecars_taken_beside_canaries := sidecars_conflicts([name |
	some name in sidecars_sorted
	not sidecars_candidates[name]
])

sidecars_left_out(set) := because if {
	because := sidecars_not_selected(set)
} else := because if {
	because := sidecars_paused(set)
} else := because if {
	because := sidecars_skipped(set)
}

# METADATA
# title: Not selected
# description: Neither the selectors of the SidecarSet nor a rule want the pod to have it.
# labels:
#   id: injection.sidecars.not-selected
sidecars_not_selected(set) := {
	"rule": "injection.sidecars.not-selected",
	"reason": "NotSelected",
	"message": sprintf("SidecarSet %s does not select the pod.", [set.name]),
} if {
	not set.selected
	not user_add[set.name]
}

# METADATA
# title: Paused
# description: The injection strategy of the SidecarSet is paused.
# labels:
#   id: injection.sidecars.paused
sidecars_paused(set) := {
	"rule": "injection.sidecars.paused",
	"reason": "InjectionPaused",
	"message": sprintf("The injectionStrategy of SidecarSet %s is paused.", [set.name]),
} if {
	set.paused
}

# METADATA
# title: Skipped
# description: A rule of a platform bundle leaves the SidecarSet out, whatever another rule adds.
# labels:
#   id: injection.sidecars.skipped
sidecars_skipped(set) := user_skip[set.name]

# METADATA
# title: Replaced by a canary
# description: A canary that the pod is given stands in for its base.
# labels:
#   id: injection.sidecars.canary
sidecars_replaced(set) := {
	"rule": "injection.sidecars.canary",
	"reason": "CanaryInjected",
	"message": sprintf("SidecarSet %s stands in for SidecarSet %s as its canary.", [min(canaries), set.name]),
} if {
	canaries := sidecars_canaries[set.name]
}

# METADATA
# title: The order
# description: |
#   First what the setting first names, then the SidecarSets for the pod's
#   namespace alone, then all others, each by name.
# labels:
#   id: injection.sidecars.order
sidecars_sorted := [name |
	some [_, _, name] in sort([[sidecars_place(set.name), {true: 0, false: 1}[set.local], set.name] |
		some set in input.sets
		not sidecars_out[set.name]
	])
]

# Those of them that only the name of a container can still leave out.
sidecars_order := [name |
	some name in sidecars_sorted
	not sidecars_left[name]
	not sidecars_lost[name]
]

sidecars_place(name) := place if {
	some place, first in user_first
	first == name
} else := count(user_first)

# METADATA
# title: A container of that name is there
# description: |
#   A SidecarSet that comes earlier, and that the pod is given, has a container of
#   that name for the pod. The webhook of SidecarSets refuses two such SidecarSets
#   where it sees that they select the same pods.
# labels:
#   id: injection.sidecars.name-taken
sidecars_taken := object.union(sidecars_lost, sidecars_conflicts(sidecars_order))

# The SidecarSets of a list that earlier ones leave out, with why. One that is left
# out itself leaves out none.
sidecars_conflicts(order) := {} if {
	names := [container | some name in order; some container in sidecars_known[name].containers]
	count(names) == count({container | some container in names}) # most often there are no two
} else := {name: because |
	rivals := sidecars_rivals(order)
	given := {name | some name in order; not rivals[name]}
	settled := sidecars_settle_all({"rivals": rivals, "given": given, "left": set(), "rest": object.keys(rivals)})
	some name in settled.left | settled.rest
	against := array.concat([rival | some rival in rivals[name]; rival[0] in settled.given], rivals[name])[0]
	because := {
		"rule": "injection.sidecars.name-taken",
		"reason": "ContainerNameTaken",
		"message": sprintf("SidecarSet %s, which comes earlier, has a container %s for this pod as well as SidecarSet %s.", [against[0], against[1], name]),
	}
}

# The earlier SidecarSets of a list that have a container of the same name, by SidecarSet.
sidecars_rivals(order) := {name: others |
	some at, name in order
	others := [[other, container] |
		some before, other in order
		before < at
		some container in sidecars_known[other].containers
		container in sidecars_known[name].containers
	]
	count(others) > 0
}

# Each step leaves out those that a given SidecarSet is a rival of, and gives those
# whose rivals are all left out. A chain of more than 64 is left out from there on.
sidecars_settle_all(state) := sidecars_settle_16(sidecars_settle_16(sidecars_settle_16(sidecars_settle_16(state))))

sidecars_settle_16(state) := sidecars_settle_4(sidecars_settle_4(sidecars_settle_4(sidecars_settle_4(state))))

sidecars_settle_4(state) := sidecars_settle(sidecars_settle(sidecars_settle(sidecars_settle(state))))

sidecars_settle(state) := state if {
	count(state.rest) == 0
} else := object.union(state, {"given": state.given | given, "left": state.left | left, "rest": (state.rest - given) - left}) if {
	left := {name | some name in state.rest; some rival in state.rivals[name]; rival[0] in state.given}
	given := {name | some name in state.rest; every rival in state.rivals[name] { rival[0] in state.left }}
}

# The first clause that applies says which revision it is.
sidecars_revision := {set.name: chosen |
	some set in input.sets
	chosen := sidecars_revision_of(set)
}

sidecars_revision_of(set) := chosen if {
	chosen := sidecars_latest(set)
} else := chosen if {
	chosen := sidecars_gone(set)
} else := chosen if {
	chosen := sidecars_update_paused(set)
} else := chosen if {
	chosen := sidecars_always(set)
} else := chosen if {
	chosen := sidecars_unselected(set)
} else := chosen if {
	chosen := sidecars_drawn(set)
} else := sidecars_updated(set)

# METADATA
# title: The latest
# description: The injection strategy names no revision.
# labels:
#   id: injection.sidecars.latest
sidecars_latest(set) := sidecars_choice("Latest", "latest", "LatestRevision", "The injectionStrategy names no revision, so the pod gets the latest.") if {
	not set.revision
}

# METADATA
# title: The named revision is gone
# description: It is not in history any more, so the pod gets the latest.
# labels:
#   id: injection.sidecars.revision-gone
sidecars_gone(set) := sidecars_choice("Latest", "revision-gone", "RevisionGone", "The revision that the injectionStrategy names does not exist, so the pod gets the latest.") if {
	not set.revision.found
}

# METADATA
# title: The update is paused
# description: While updateStrategy is paused, new pods get the named revision.
# labels:
#   id: injection.sidecars.update-paused
sidecars_update_paused(set) := sidecars_choice("Named", "update-paused", "UpdatePaused", "The updateStrategy is paused, so the pod gets the revision that the injectionStrategy names.") if {
	set.updatePaused
}

# METADATA
# title: Always
# description: All new pods get the named revision.
# labels:
#   id: injection.sidecars.always
sidecars_always(set) := sidecars_choice("Named", "always", "RevisionNamed", "The injectionStrategy names the revision for all pods.") if {
	set.revision.policy in {"Always", ""}
}

# METADATA
# title: Not among those that are updated
# description: Policy Partial, and updateStrategy.selector does not select the pod.
# labels:
#   id: injection.sidecars.not-updated
sidecars_unselected(set) := sidecars_choice("Named", "not-updated", "NotSelectedForUpdate", "The updateStrategy does not select the pod, so it gets the revision that the injectionStrategy names.") if {
	set.updateSelected == false
}

# METADATA
# title: Drawn
# description: Policy Partial, and as many new pods get the named revision as the partition says in percent.
# labels:
#   id: injection.sidecars.drawn
sidecars_drawn(set) := sidecars_choice("Named", "drawn", "WithinPartition", "The partition keeps this share of pods at the revision that the injectionStrategy names.") if {
	not has_selector(set)
	set.draw <= set.share
}

# METADATA
# title: Updated
# description: Policy Partial, and the pod is among those that get the latest revision.
# labels:
#   id: injection.sidecars.updated
sidecars_updated(_) := sidecars_choice("Latest", "updated", "AmongUpdated", "The pod is among those that get the latest revision.")

has_selector(set) if is_boolean(set.updateSelected)

sidecars_choice(revision, id, reason, message) := {
	"revision": revision,
	"rule": concat("", ["injection.sidecars.", id]),
	"reason": reason,
	"message": message,
}
