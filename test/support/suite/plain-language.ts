/** Phrases that need a guess: a figure of speech, or a sentence that does not name its subject. */
const phrases = [
  /\bhow (?:it|they) (?:is|are)\b/i,
  /\bwhat users hold\b/i,
  /\bwho (?:did|may (?:change|do)) what\b/i,
  /\b(?:survive the night|at 3 am|is 3 am)\b/i,
  /\bbeats (?:it|its)\b/i,
  /\b(?:in force|secrets lie|still lines|never cut|fallen silent|sign-ins that count)\b/i,
  /\b(?:take|set) something\b/i,
  /\bwhat there is to say\b/i,
  /\bmeans to report\b/i,
  /\bhow deep to look\b/i,
  /\bwhether it is there\b/i,
  /^ +\S+ +Its (?:name|value)\b/m,
  /\bconfiguration from before\b/,
  /\bshows what it takes\b/,
  /\boverwrites nothing\b/,
  /\bthe same answers over HTTP\b/,
  /\b(?:ages|is|are) looked at\b/,
  /\b(?:goes|go) unseen\b/,
  /\bonly when (?:somebody|someone) asks\b/,
  /\basks for (?:a|the|two)\b[^.]{0,20}\bpasswords?\b/,
  /@svc-cli\/svc\//,
]

/** The phrases of a text that need a guess, also over the end of a line. */
export const unclearPhrases = (text: string): readonly string[] => {
  const joined = text.replaceAll(/\n {2,}(?=\S)/g, ' ')
  return phrases.flatMap((phrase) => phrase.exec(joined)?.[0] ?? [])
}
