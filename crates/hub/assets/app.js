// The pages of a fleet.

import { start } from "./frame.js";
import * as alerts from "./alerts.js";
import * as bottlenecks from "./bottlenecks.js";
import * as config from "./config.js";
import * as fleet from "./fleet.js";
import * as links from "./links.js";
import * as matrix from "./matrix.js";
import * as orders from "./orders.js";
import * as pair from "./pair.js";
import * as run from "./run.js";
import * as timetable from "./timetable.js";

start([
  [/^\/$/, matrix.show],
  [/^\/pair\/([^/]+)\/([^/]+)$/, pair.show],
  [/^\/run\/([^/]+)$/, run.show],
  [/^\/bottlenecks$/, bottlenecks.show],
  [/^\/alerts$/, alerts.show],
  [/^\/links$/, links.show],
  [/^\/timetable$/, timetable.show],
  [/^\/orders$/, orders.show],
  [/^\/configuration$/, config.show],
  [/^\/fleet$/, fleet.show],
], ["run", "agent", "plan", "alert"]);
