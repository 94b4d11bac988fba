# METADATA
# title: Wait for a dependency
# description: |
#   A workload is not updated while the pipeline of something that it depends on
#   says, by an annotation, that this is being rolled out.
package extend.rollout.wait_for_dependency

import future.keywords.not

# Edit this. What follows the prefix is the name of the dependency.
dependency := {"prefix": "rolling.shop.example/", "seconds": 7200}

# METADATA
# title: A dependency is being rolled out
# description: |
#   The value is when that began, as seconds since 1970. The hold ends after two
#   hours, so that no workload waits for a pipeline that failed.
# labels:
#   id: wait-for-dependency.rolling
hold contains {
	"rule": "wait-for-dependency.rolling",
	"reason": "DependencyRolling",
	"message": sprintf("%s waits while %s is being rolled out (annotation %s).", [workload, name, key]),
	"until": time.format(until),
} if {
	input.update > 0
	some key, value in input.workload.annotations
	startswith(key, dependency.prefix)
	name := trim_prefix(key, dependency.prefix)
	regex.match(`^[0-9]{9,11}$`, value)
	until := (to_number(value) + dependency.seconds) * 1000000000
	input.now < until
}

# METADATA
# title: The start is not known
# description: Its author meant to stop something, so the hold stays until the annotation is taken off.
# labels:
#   id: wait-for-dependency.no-time
hold contains {
	"rule": "wait-for-dependency.no-time",
	"reason": "DependencyRolling",
	"message": sprintf("%s waits while %s is being rolled out. The annotation %s does not say since when, so it does not end by itself.", [workload, name, key]),
} if {
	input.update > 0
	some key, value in input.workload.annotations
	startswith(key, dependency.prefix)
	name := trim_prefix(key, dependency.prefix)
	not regex.match(`^[0-9]{9,11}$`, value)
}

workload := sprintf("%s %s/%s", [input.workload.kind, input.workload.namespace, input.workload.name])
