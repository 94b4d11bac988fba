package extend.injection.no_logs_for_batch_jobs_test

import data.extend.injection.no_logs_for_batch_jobs

skipped(pod) := {wish.set | some wish in wishes} if {
	wishes := no_logs_for_batch_jobs.skip with input.pod as pod
}

test_a_pod_of_a_job_does_without if skipped({"owner": {"group": "batch", "kind": "Job", "name": "count"}}) == {"log-agent"}

test_other_pods_have_it if {
	every pod in [{}, {"owner": {"group": "apps", "kind": "ReplicaSet", "name": "web"}}, {"owner": {"group": "example.com", "kind": "Job", "name": "x"}}] {
		skipped(pod) == set()
	}
}
