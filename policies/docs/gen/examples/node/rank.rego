package override.node

default rank := {"keys": [], "holds": [], "denials": []}

# Nodes of a pool for jobs go last. There is nothing else to go by.
rank := {"keys": [[{true: 1, false: 0}[object.get(node, ["labels", "pool"], "") == "jobs"]] | some node in input.nodes], "holds": [], "denials": []}
