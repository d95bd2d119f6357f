/** The password that svc would send to a hostile server. */
export const hostilePassword = 'correct horse 7'
