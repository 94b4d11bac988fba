-- Reads fields. A field that is missing or has another type than its kind gives it never is an error.

-- readField returns the field at a path, nil if there is none.
local function readField(value, ...)
  for _, name in ipairs({...}) do
    if type(value) ~= "table" then return nil end
    value = value[name]
  end
  return value
end

-- readNumber returns a number; 0 if there is none, since a status may leave a 0 out.
local function readNumber(value, ...)
  local found = readField(value, ...)
  if type(found) == "number" then return found end
  return 0
end

-- readText returns a string, "" if there is none.
local function readText(value, ...)
  local found = readField(value, ...)
  if type(found) == "string" then return found end
  return ""
end

-- readTable returns a map or a list, an empty one if there is none.
local function readTable(value, ...)
  local found = readField(value, ...)
  if type(found) == "table" then return found end
  return {}
end

-- lesser returns the lesser of two numbers.
local function lesser(a, b)
  if a < b then return a end
  return b
end

-- greater returns the greater of two numbers.
local function greater(a, b)
  if a > b then return a end
  return b
end

-- countEntries counts the entries of a map.
local function countEntries(map)
  local n = 0
  for _ in pairs(map) do n = n + 1 end
  return n
end

-- readPercentage returns the number of a percentage such as "12.5%", nil for other text. Argo CD opens no string library for
-- scripts of users, and comparisons of strings need none. So it finds the digits one by one: each is the last character that,
-- put behind the digits before it, is not greater than the text.
local function readPercentage(text)
  local digits = ""
  while #digits < 16 do
    if digits .. "%" == text then return tonumber(digits) end
    local following
    for _, digit in ipairs({".", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}) do
      if digits .. digit <= text then following = digit end
    end
    if not following then return nil end
    digits = digits .. following
  end
  return nil
end

-- resolveShare returns a number or a percentage of a total, rounded down; nil for another value.
local function resolveShare(share, total)
  if type(share) == "number" then return share end
  local percent = type(share) == "string" and readPercentage(share)
  if not percent then return nil end
  local exact = percent * total / 100
  return exact - exact % 1
end
