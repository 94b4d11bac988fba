-- What kinds that roll out revisions share. Each has the function nameRevision, and three that describe an object in one table.
-- describeStrategy says how it is updated:
--   path, at           the path of the map with the fields paused and partition, and that as text
--   rolling, paused    that map, and whether the rollout is paused
--   policy, template   how pods are updated, and the path of their template, if there is one
--   manual             why no pod is updated unless a client acts
--   isKept             true if the strategy lets pods keep what they have, so that nothing waits for their update
-- countPods counts:
--   wanted, target     how many pods there should be, and how many of them should be updated
--   pods               how many pods there are; expected, if there, is how many there should be now
--   available, updated how many of them are available, and updated
--   done               how many are updated and available
-- addSigns adds what its conditions say:
--   failures           conditions that mean a failure: type and status, and the only reason that does or one that does not
--   limit              why the counts do not show whether the pods that are to be updated are
--   hold, notes        messages: what is held beside the update, and what else a person should know

-- describeProgress is how far a rollout is.
local function describeProgress(w)
  local text = lesser(w.updated, w.target) .. " of " .. w.target .. " pods are updated, "
    .. lesser(w.done, w.target) .. " of them available."
  local expected = w.expected or w.wanted
  if w.pods ~= expected then
    text = text .. " There are " .. w.pods .. " pods, and " .. expected .. " are wanted."
  elseif w.available < w.pods then
    text = text .. " " .. w.available .. " of " .. w.pods .. " pods are available."
  end
  return text
end

-- isConverged reports whether a rollout is complete, as regatta rollout status does.
local function isConverged(w)
  return w.pods == (w.expected or w.wanted) and w.done >= w.target
end

-- isBusy reports whether pods come, go or become available, or fail to: then the workload does more than wait.
local function isBusy(w)
  return w.pods ~= (w.expected or w.wanted) or w.available < w.pods
end

-- describeWait says for what a rollout waits that its controller does not bring about; nil if for nothing.
local function describeWait(obj, w)
  if w.paused then
    return w.at .. ".paused is true: no pod is updated until it is false."
  end
  local held = readCondition(obj, "UpdateHeld", "True")
  return w.manual or held and "Held: " .. held or w.limit
end

-- judgeConverged judges a complete rollout.
local function judgeConverged(w)
  local text = lesser(w.done, w.wanted) .. " of " .. w.wanted .. " pods are updated and available."
  if isBusy(w) then text = describeProgress(w) end
  if w.target < w.wanted and w.updated < w.wanted then
    return judgeWaiting(isBusy(w), text .. " The partition keeps " .. w.wanted - w.target .. " of " .. w.wanted
      .. " pods at their revision: lower it, or run the action promote.")
  end
  if isBusy(w) then return newHealth("Progressing", text) end
  if w.paused then
    text = text .. " " .. w.at .. ".paused is true: the next revision waits until it is false."
  end
  return newHealth("Healthy", text .. (w.notes and " " .. w.notes or ""))
end

-- findFailure returns the message of the first condition that means a failure, nil if there is none.
local function findFailure(obj, failures)
  for _, failure in ipairs(failures) do
    local message, reason = readCondition(obj, failure.type, failure.status), readField(findCondition(obj, failure.type), "reason")
    if message and (not failure.only or failure.only == reason) and (not failure.except or failure.except ~= reason) then
      return message
    end
  end
  return nil
end

-- judgeRollout is the health of a workload, which w describes in full.
local function judgeRollout(obj, w)
  local health = judgeObserved(obj)
  if health then return health end
  local failure = findFailure(obj, w.failures)
  if failure then return newHealth("Degraded", failure) end
  if w.hold then return judgeWaiting(isBusy(w), describeProgress(w) .. " Held: " .. w.hold) end
  if isConverged(w) then return judgeConverged(w) end
  if w.isKept and not isBusy(w) then return newHealth("Healthy", describeProgress(w) .. " " .. w.manual) end
  local wait = describeWait(obj, w)
  if wait then return judgeWaiting(isBusy(w), describeProgress(w) .. " " .. wait) end
  return newHealth("Progressing", describeProgress(w) .. (w.notes and " " .. w.notes or ""))
end

-- newStrategy describes a strategy. path is that of the map with paused and partition, policy the field in it with the update
-- policy, and spec the path of the spec with updateStrategy and the template of pods. The last two may be nil.
local function newStrategy(obj, path, policy, spec)
  local rolling = readField(obj, unpack(path))
  local w = {path = path, at = table.concat(path, "."), rolling = rolling, paused = readField(rolling, "paused") == true}
  if not spec then return w end
  w.policy, w.template = readField(rolling, policy), {unpack(spec)}
  w.template[#spec + 1] = "template"
  if readField(readField(obj, unpack(spec)), "updateStrategy", "type") == "OnDelete" then
    w.manual = table.concat(spec, ".") .. ".updateStrategy.type is OnDelete: a pod is updated when a client deletes it."
  end
  return w
end

-- readReplicas returns spec.replicas, whose default is 1.
local function readReplicas(obj)
  local replicas = readField(obj, "spec", "replicas")
  return type(replicas) == "number" and replicas or 1
end
