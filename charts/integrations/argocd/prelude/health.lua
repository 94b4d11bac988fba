-- What the health checks of all kinds share.

-- newHealth makes the answer of a health check.
local function newHealth(status, message)
  return {status = status, message = message}
end

-- findCondition returns a condition of the status, nil if there is none.
local function findCondition(obj, kind)
  for _, condition in ipairs(readTable(obj, "status", "conditions")) do
    if readField(condition, "type") == kind then return condition end
  end
  return nil
end

-- readCondition returns the message of a condition that has a status, else its reason, else its type; nil if the
-- condition is missing or has another status.
local function readCondition(obj, kind, status)
  local condition = findCondition(obj, kind)
  if readField(condition, "status") ~= status then return nil end
  for _, field in ipairs({"message", "reason"}) do
    local text = readText(condition, field)
    if text ~= "" then return text end
  end
  return kind
end

-- judgeController judges what keeps a controller of Regatta from acting on an object of any kind; nil if nothing does. Stalled has
-- other reasons too: it sums up what the checks of the kinds look at themselves.
local function judgeController(obj)
  local isOff = readField(findCondition(obj, "Stalled"), "reason") == "FeatureGateOff"
  local message = isOff and readCondition(obj, "Stalled", "True") or readCondition(obj, "FailedReconcile", "True")
  return message and newHealth("Degraded", message)
end

-- isObserved reports whether the status is of the newest spec.
local function isObserved(obj)
  return type(readField(obj, "status")) == "table"
    and readNumber(obj, "status", "observedGeneration") >= readNumber(obj, "metadata", "generation")
end

-- unobserved is the health of an object that its controller has not seen yet.
local unobserved = "The controller has not seen the newest change yet."

-- judgeObserved judges what is alike for all kinds with an observedGeneration; nil if their own check is to judge.
local function judgeObserved(obj)
  local health = judgeController(obj)
  if not health and not isObserved(obj) then health = newHealth("Progressing", unobserved) end
  return health
end

-- judgeStarted judges what is alike for all jobs, which have no observedGeneration; nil if their own check is to judge.
local function judgeStarted(obj)
  local health = judgeController(obj)
  if not health and not readField(obj, "status", "startTime") then health = newHealth("Progressing", unobserved) end
  return health
end

-- judgeWaiting is the health of an object that waits for an event outside of it: Suspended, or Progressing while something
-- is under way.
local function judgeWaiting(isBusy, message)
  return newHealth(isBusy and "Progressing" or "Suspended", message)
end
