package extend.protection.team_guard_rails_test

import future.keywords.not

import data.extend.protection.team_guard_rails

messages(moment, facts) := {denial.message | some denial in denials} if {
	denials := team_guard_rails.deny with team_guard_rails.night as {"from": "20:00", "to": "07:00", "timezone": "Europe/Berlin"}
		with input as object.union(
			{
				"now": time.parse_rfc3339_ns(moment),
				"request": {"operation": "DELETE", "user": {"name": "ann", "groups": ["system:authenticated"]}},
				"object": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
			},
			facts,
		)
}

test_at_night_it_stays_by_the_clock_of_its_zone if {
	messages("2026-03-10T20:00:00+01:00", {}) == {"CloneSet shop/web is not deleted between 20:00 and 07:00 (Europe/Berlin). Try again in the morning."}
	count(messages("2026-03-11T05:59:59Z", {})) == 1
	count(messages("2026-07-10T18:00:00Z", {})) == 1
}

test_by_day_it_goes if {
	messages("2026-03-11T07:00:00+01:00", {}) == set()
	messages("2026-03-10T19:59:59+01:00", {}) == set()
}

test_controllers_updates_and_pods_go_on if {
	messages("2026-03-10T22:00:00+01:00", {"request": {"user": {"groups": ["system:serviceaccounts:kube-system"]}}}) == set()
	messages("2026-03-10T22:00:00+01:00", {"request": {"operation": "UPDATE"}}) == set()
	messages("2026-03-10T22:00:00+01:00", {"object": {"kind": "Pod"}}) == set()
}

test_the_api_server_asks_about_workloads_and_claims if {
	{guard.resource | some guard in team_guard_rails.guard} == {"deployments", "statefulsets", "clonesets", "persistentvolumeclaims"}
}

test_the_night_is_made_of_times_over_midnight if {
	every moment in [team_guard_rails.night.from, team_guard_rails.night.to] {
		regex.match(`^([01][0-9]|2[0-3]):[0-5][0-9]$`, moment)
	}
	team_guard_rails.night.from > team_guard_rails.night.to
	time.format([0, team_guard_rails.night.timezone, "2006"]) in {"1969", "1970"}
}
