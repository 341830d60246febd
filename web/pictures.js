// Small pictures of queries and items, by their places; hubs have larger ones on their cards.

const byPlace = ({ place, picture }) => new Map(Array.from(place, (at, row) => [at, picture[row]]));

/** @returns {{item(place: number): ?string, query(place: number): ?string}} addresses for isThumbnail */
export const readPictures = ({ items, queries }) => {
  const [ofItems, ofQueries] = [byPlace(items), byPlace(queries)];
  return { item: (place) => ofItems.get(place) ?? null, query: (place) => ofQueries.get(place) ?? null };
};
