-- findTemplate returns the field with the template of the subsets, and where in its spec pausing is done; nil if there is none.
local function findTemplate(obj)
  for _, known in ipairs({
    {"cloneSetTemplate", "updateStrategy", "rollingUpdate"}, {"advancedStatefulSetTemplate", "updateStrategy", "rollingUpdate"},
    {"statefulSetTemplate"}, {"deploymentTemplate"},
  }) do
    if type(readField(obj, "spec", "template", known[1])) == "table" then return unpack(known) end
  end
  return nil
end

-- describeStrategy describes how the subsets of a UnitedDeployment are updated: by the strategy of their template.
local function describeStrategy(obj)
  local template, strategy, rolling = findTemplate(obj)
  if not template then return newStrategy(obj, {"spec", "template"}) end
  return newStrategy(obj, {"spec", "template", template, "spec", strategy, rolling}, "podUpdatePolicy", {"spec", "template", template, "spec"})
end

-- countWanted returns how many pods there should be. Without spec.replicas each subset has a number of its own.
local function countWanted(obj)
  local subsets = readTable(obj, "spec", "topology", "subsets")
  if readField(obj, "spec", "replicas") ~= nil or #subsets == 0 then return readReplicas(obj) end
  local wanted = 0
  for _, subset in ipairs(subsets) do
    if readField(subset, "replicas") == nil then return 1 end
    wanted = wanted + readNumber(subset, "replicas")
  end
  return wanted
end

-- countKept returns how many pods the partitions keep at their revision. The partitions in the status are no measure: a policy
-- that holds a subset raises them. Deployments have no partition.
local function countKept(obj)
  local kept = 0
  if findTemplate(obj) == "deploymentTemplate" then return kept end
  for _, subset in ipairs(readTable(obj, "status", "subsetStatuses")) do
    local partition = readNumber(obj, "spec", "updateStrategy", "manualUpdate", "partitions", readText(subset, "name"))
    kept = kept + lesser(greater(partition, 0), readNumber(subset, "replicas"))
  end
  return kept
end

-- countPods adds the counts of a UnitedDeployment. The status counts ready pods in place of available ones.
local function countPods(obj, w)
  local status = readTable(obj, "status")
  w.wanted = countWanted(obj)
  w.target = greater(w.wanted - countKept(obj), 0)
  w.pods, w.available = readNumber(status, "replicas"), readNumber(status, "readyReplicas")
  w.updated, w.done = readNumber(status, "updatedReplicas"), readNumber(status, "updatedReadyReplicas")
  return w
end

-- nameRevision returns the name of the newest revision. It is in updateStatus in v1alpha1.
local function nameRevision(obj)
  local name = readText(obj, "status", "updatedRevision")
  return name ~= "" and name or readText(obj, "status", "updateStatus", "updatedRevision")
end

-- addSigns adds the conditions that mean a failure, and what a policy holds beside the update. Workloads that go when others are
-- available are no failure.
local function addSigns(obj, w)
  w.hold = readCondition(obj, "AllocationHeld", "True")
  w.notes = readCondition(obj, "Placing", "False")
  w.failures = {
    {type = "SubsetFailure", status = "True"}, {type = "SubsetProvisioned", status = "False"}, {type = "SubsetUpdated", status = "False"},
    {type = "Placing", status = "False", except = "WaitingForSubsets"},
  }
  return w
end
