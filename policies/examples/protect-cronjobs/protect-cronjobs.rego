# METADATA
# title: CronJobs can be protected
# description: The label policy.kruise.io/delete-protection=Always keeps a CronJob too.
# labels:
#   id: protect-cronjobs.kinds
package extend.protection.protect_cronjobs

# The resource in the plural and its group. Where cascading is "replicas", the
# label's value Cascading keeps objects whose spec.replicas is more than 0.
settings := {"kinds": {"cronjobs.batch": {"cascading": ""}}}
