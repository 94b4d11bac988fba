# METADATA
# title: No log agent for batch jobs
# description: Pods of Jobs do without the SidecarSet log-agent, though it selects them.
package extend.injection.no_logs_for_batch_jobs

import future.keywords.not

# METADATA
# title: A pod of a job
# description: The owner of the pod is a Job.
# labels:
#   id: no-logs-for-batch-jobs.job
skip contains {
	"rule": "no-logs-for-batch-jobs.job",
	"set": "log-agent",
	"reason": "BatchJob",
	"message": sprintf("Pods of Jobs, such as %s, run without the log agent.", [input.pod.owner.name]),
} if {
	input.pod.owner.kind == "Job"
	input.pod.owner.group == "batch"
}
