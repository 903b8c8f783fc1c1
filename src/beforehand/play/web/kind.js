// What a kind of run adds to the page. A page of another kind has its own module in this place.

/** A run of contacts adds nothing. */
export const KIND = {};
