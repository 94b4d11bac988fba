-- describeStrategy describes how an Advanced StatefulSet is updated.
local function describeStrategy(obj)
  return newStrategy(obj, {"spec", "updateStrategy", "rollingUpdate"}, "podUpdatePolicy", {"spec"})
end

-- countDone returns how many pods are updated and available, at least. The status of v1alpha1 does not say it: each pod that
-- is not available may be an updated one.
local function countDone(obj, w)
  if readField(obj, "apiVersion") ~= "apps.kruise.io/v1alpha1" then return readNumber(obj, "status", "updatedAvailableReplicas") end
  return greater(w.updated - greater(greater(w.pods, w.wanted) - w.available, 0), 0)
end

-- countPods adds the counts of an Advanced StatefulSet.
local function countPods(obj, w)
  local status = readTable(obj, "status")
  w.wanted = readReplicas(obj)
  w.target = greater(w.wanted - readNumber(w.rolling, "partition"), 0)
  w.pods, w.available = readNumber(status, "replicas"), readNumber(status, "availableReplicas")
  w.updated = readNumber(status, "updatedReplicas")
  w.done = countDone(obj, w)
  return w
end

-- nameRevision returns the name of the newest revision.
local function nameRevision(obj)
  return readText(obj, "status", "updateRevision")
end

-- addSigns adds the conditions that mean a failure. Claims that are larger than their templates, or wait for a client to delete
-- them, stop no rollout.
local function addSigns(obj, w)
  w.notes = readCondition(obj, "VolumeClaimsDiffer", "True")
  w.failures = {
    {type = "FailedUpdatePod", status = "True"}, {type = "FailedCreatePod", status = "True"},
    {type = "VolumeClaimsDiffer", status = "True", only = "CannotGrow"},
  }
  return w
end
