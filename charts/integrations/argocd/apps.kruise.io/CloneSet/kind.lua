-- describeStrategy describes how a CloneSet is updated. In v1alpha1 the fields of rollingUpdate are in updateStrategy, and the
-- update policy is the type of that.
local function describeStrategy(obj)
  local path, policy = {"spec", "updateStrategy", "rollingUpdate"}, "podUpdatePolicy"
  if readField(obj, "apiVersion") == "apps.kruise.io/v1alpha1" then
    path, policy = {"spec", "updateStrategy"}, "type"
  end
  return newStrategy(obj, path, policy, {"spec"})
end

-- countPods adds the counts of a CloneSet. The status has what the partition means in numbers.
local function countPods(obj, w)
  local status = readTable(obj, "status")
  w.wanted, w.target = readReplicas(obj), readNumber(status, "expectedUpdatedReplicas")
  w.pods, w.available = readNumber(status, "replicas"), readNumber(status, "availableReplicas")
  w.updated, w.done = readNumber(status, "updatedReplicas"), readNumber(status, "updatedAvailableReplicas")
  return w
end

-- nameRevision returns the name of the newest revision.
local function nameRevision(obj)
  return readText(obj, "status", "updateRevision")
end

-- addSigns adds the conditions that mean a failure.
local function addSigns(_, w)
  w.failures = {
    {type = "Progressing", status = "False"}, {type = "FailedUpdate", status = "True"}, {type = "FailedScale", status = "True"},
  }
  return w
end
