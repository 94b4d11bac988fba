# METADATA
# title: Who may break the glass
# description: |
#   These people may let go what a budget, the label or another policy protects, by
#   an annotation with a reason. It is written down each time.
# labels:
#   id: break-glass.who
package extend.protection.break_glass

# Edit this. Users and groups are those that the API server knows: kubectl auth whoami
settings := {"breakGlass": {"users": ["ann@shop.example"], "groups": ["shop:on-call"]}}
